# bash: offers what `mneme complete` lists.
_mneme() {
  local line="${COMP_LINE:0:COMP_POINT}" words current
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  current="${words[-1]}"
  mapfile -t COMPREPLY < <("${words[0]}" complete "${words[@]:1}" 2> /dev/null)
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
  # bash takes what follows = for a word of its own
  [[ $current == *=* && $COMP_WORDBREAKS == *=* ]] && COMPREPLY=("${COMPREPLY[@]#*=}")
  # names that the shell would read as more than a name
  local i
  for i in "${!COMPREPLY[@]}"; do [[ ${COMPREPLY[i]} == *[!A-Za-z0-9_./=,:+@%-]* ]] && printf -v "COMPREPLY[$i]" %q "${COMPREPLY[i]}"; done
}
complete -o default -F _mneme mneme

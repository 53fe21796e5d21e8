# fish: offers what `mneme complete` lists, and files.
complete -c mneme -a '(mneme complete (commandline -opc)[2..] (commandline -ct) 2> /dev/null)'

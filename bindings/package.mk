# package.mk -- what `make install` puts where, the Debian package, the tarball, and Python's wheel.  A user's Lua finds
# Mneme by share/lua.

VERSION := $(shell sed -n 's/^return "\(.*\)"/\1/p' lua/mneme/base/version.lua)
TO       = $(DESTDIR)$(PREFIX)
# Where zsh looks: a package's completions have a folder of their own.
ZSH      = share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
DOCS     = README.md CHANGELOG.md LICENSE

install: all    ## install into PREFIX (/usr/local), below DESTDIR if that is set
	@install -d $(TO)/bin $(TO)/lib/pkgconfig $(TO)/include/mneme $(TO)/share/mneme/library $(TO)/share/lua/5.1 $(TO)/$(ZSH) \
	  $(TO)/share/bash-completion/completions $(TO)/share/fish/vendor_completions.d $(TO)/share/man/man1 \
	  $(TO)/share/doc/mneme/docs/figures $(TO)/share/doc/mneme/docs/results
	@install $(B)/mneme $(TO)/bin/
	@install -m 644 $(wildcard $(B)/libmneme.so $(B)/libmneme_view.so $(B)/libmneme_cuda.so) $(TO)/lib/
	@install -m 644 engine/mneme.h scenes/view/view.h $(TO)/include/mneme/
	@cp -R lua scenes experiments $(TO)/share/mneme/
	@rm -r $(TO)/share/mneme/lua/main.c $(TO)/share/mneme/scenes/view
	@[ ! -e $(B)/bytecode ] || install -m 644 $(B)/bytecode $(TO)/share/mneme/lua/mneme/
	@ln -sfn ../../mneme/lua/mneme $(TO)/share/lua/5.1/mneme
	@sed 's|@VERSION@|$(VERSION)|' bindings/mneme.pc.in > $(TO)/lib/pkgconfig/mneme.pc
	@install -m 644 bindings/shell/mneme.bash $(TO)/share/bash-completion/completions/mneme
	@install -m 644 bindings/shell/_mneme $(TO)/$(ZSH)/
	@install -m 644 bindings/shell/mneme.fish $(TO)/share/fish/vendor_completions.d/
	@MNEME_HOME='$(CURDIR)' $(RUN) $(B)/mneme help annotations > $(TO)/share/mneme/library/mneme.lua
	@MNEME_HOME='$(CURDIR)' $(RUN) $(B)/mneme help man > $(TO)/share/man/man1/mneme.1 && gzip -9nf $(TO)/share/man/man1/mneme.1
	@install -m 644 $(DOCS) $(TO)/share/doc/mneme/
	@install -m 644 $(wildcard docs/*.md docs/*.png docs/*.gif) $(TO)/share/doc/mneme/docs/
	@install -m 644 $(wildcard docs/results/*.md docs/results/*.svg docs/results/*.jsonl) $(TO)/share/doc/mneme/docs/results/
	@install -m 644 $(wildcard docs/figures/*.svg docs/figures/*.png) $(TO)/share/doc/mneme/docs/figures/
	@echo "installed $(TO)/bin/mneme"

uninstall:      ## remove the files that install put there
	@rm -rf $(TO)/share/mneme $(TO)/include/mneme $(TO)/share/doc/mneme
	@rm -f $(TO)/bin/mneme $(TO)/lib/libmneme.so $(TO)/lib/libmneme_view.so $(TO)/lib/libmneme_cuda.so $(TO)/lib/pkgconfig/mneme.pc \
	  $(TO)/share/lua/5.1/mneme $(TO)/share/bash-completion/completions/mneme $(TO)/$(ZSH)/_mneme \
	  $(TO)/share/fish/vendor_completions.d/mneme.fish $(TO)/share/man/man1/mneme.1.gz
	@echo "removed Mneme from $(TO)"

# The package runs on every amd64: the program is built for the oldest, the engine once more for each generation
# that computes faster (lua/mneme/base/engine.lua chooses).
DEB_ARCH     = $(shell dpkg --print-architecture)
MACHINE     := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2> /dev/null)))
GENERATIONS  = $(if $(filter x86_64,$(MACHINE)),x86-64-v3 x86-64-v4)
OLDEST       = $(if $(filter x86_64,$(MACHINE)),x86-64,$(if $(filter aarch64,$(MACHINE)),armv8-a,native))
# Of a cross compiler: aarch64-linux-gnu-gcc has aarch64-linux-gnu-strip.
STRIP        = $(patsubst %gcc,%strip,$(or $(filter %-gcc,$(CC)),gcc))
DEB          = $(B)/mneme_$(VERSION)_$(DEB_ARCH).deb
DEB_ROOT     = $(B)/deb/root

deb:            ## build a Debian package (needs dpkg-dev)
	@command -v dpkg-shlibdeps > /dev/null || { echo "make deb needs the package dpkg-dev"; exit 1; }
	@rm -rf $(DEB_ROOT) && mkdir -p $(DEB_ROOT)/DEBIAN $(B)/deb/debian
	@$(MAKE) B=$(B)/deb/$(OLDEST) ARCH=$(OLDEST) PREFIX=/usr DESTDIR=$(DEB_ROOT) install
	@for g in $(GENERATIONS); do $(MAKE) B=$(B)/deb/$$g ARCH=$$g $(B)/deb/$$g/libmneme.so && \
	  install -D -m 644 $(B)/deb/$$g/libmneme.so $(DEB_ROOT)/usr/lib/glibc-hwcaps/$$g/libmneme.so || exit 1; done
	@find $(DEB_ROOT)/usr/bin $(DEB_ROOT)/usr/lib -type f -not -name '*.pc' -exec $(STRIP) --strip-unneeded {} +
	@mv $(DEB_ROOT)/usr/share/doc/mneme/LICENSE $(DEB_ROOT)/usr/share/doc/mneme/copyright
	@gzip -9n $(DEB_ROOT)/usr/share/doc/mneme/CHANGELOG.md
	@printf 'Source: mneme\n\nPackage: mneme\nArchitecture: any\n' > $(B)/deb/debian/control
	@cd $(B)/deb && needs=$$(dpkg-shlibdeps -O --ignore-missing-info -lroot/usr/lib root/usr/bin/mneme root/usr/lib/*.so 2> /dev/null | \
	  sed -n 's/^shlibs:Depends=//p') && [ -n "$$needs" ] && \
	  sed "s/@VERSION@/$(VERSION)/; s/@ARCH@/$(DEB_ARCH)/; s/@NEEDS@/$$needs/; s/@SIZE@/$$(du -sk root/usr | cut -f1)/" \
	    $(CURDIR)/bindings/control.in > root/DEBIAN/control
	@dpkg-deb --root-owner-group --build $(DEB_ROOT) $(DEB) > /dev/null
	@echo "$(DEB)"

# The tarball holds the same three engines, and the libraries of others that they use; bindings/bundle.sh says what they need.
FOR       ?= $(OLDEST) $(GENERATIONS)
built      = $(if $(filter native,$(1)),$(B),$(B)/deb/$(1))
DIST_NAME  = mneme-$(VERSION)-linux-$(MACHINE)$(if $(filter native,$(FOR)),-native)
DIST_AT    = $(B)/dist
DIST_ROOT  = $(DIST_AT)/$(DIST_NAME)
DIST       = $(DIST_ROOT).tar.gz
AT_RUNTIME = $(foreach l,libjansson.so.4 libopenblas.so.0 libmicrohttpd.so.12,$(filter /%,$(shell $(CC) -print-file-name=$(l)))) \
             $(or $(wildcard /usr/lib/$(shell $(CC) -print-multiarch)/lua/5.1/lfs.so),$(shell luajit -e 'print(package.searchpath("lfs", package.cpath))'))

dist-folder:
	@rm -rf $(DIST_ROOT)
	@$(MAKE) B=$(call built,$(firstword $(FOR))) $(if $(filter native,$(FOR)),,ARCH=$(firstword $(FOR))) PREFIX= DESTDIR=$(DIST_ROOT) install > /dev/null
	@for g in $(wordlist 2,9,$(FOR)); do $(MAKE) B=$(B)/deb/$$g ARCH=$$g $(B)/deb/$$g/libmneme.so > /dev/null && \
	  install -D -m 644 $(B)/deb/$$g/libmneme.so $(DIST_ROOT)/lib/glibc-hwcaps/$$g/libmneme.so || exit 1; done
	@find $(DIST_ROOT)/bin $(DIST_ROOT)/lib -type f -not -name '*.pc' -exec $(STRIP) --strip-unneeded {} +
	@glibc=$$(CC='$(CC)' bindings/bundle.sh $(DIST_ROOT)/lib/bundled $(DIST_ROOT)/bin/mneme $$(find $(DIST_ROOT)/lib -name 'libmneme*.so') $(AT_RUNTIME)) && \
	  cp LICENSE $(DIST_ROOT)/ && \
	  sed "s/@VERSION@/$(VERSION)/; s/@MACHINE@/$(MACHINE)/; s/@GLIBC@/$$glibc/" bindings/dist.txt.in > $(DIST_ROOT)/README.txt
	@echo "$(abspath $(DIST_ROOT))"

dist: dist-folder ## pack a tarball that runs wherever it is unpacked (FOR=native: on CPUs like this one; DIST=FILE.tar.gz)
	@tar -C $(DIST_AT) --owner=0 --group=0 --sort=name -czf $(DIST).new $(DIST_NAME) && mv $(DIST).new $(DIST)
	@echo "$(DIST)"

# The wheel holds the program of the tarball.
pip:
	@python3 -m pip --version > /dev/null 2>&1 || { echo "make wheel needs pip: apt-get install python3-pip python3-venv"; exit 1; }
wheel: pip dist-folder ## build a wheel of the whole program for every such machine (FOR=native: this machine's kind)
	@MNEME_DIST=$(abspath $(DIST_ROOT)) python3 -m pip -q --disable-pip-version-check wheel --no-deps -w $(DIST_AT) bindings/python
	@ls $(DIST_AT)/*.whl

# Every file that is published, and its checks; what a person does then is docs/releasing.md.
RELEASE = $(B)/release
CROSS   = aarch64-linux-gnu
release: pip    ## make and check all that is published, into build/release (ROOTS="FOLDER ...": try it in bare root file systems, too)
	@rm -rf $(RELEASE) && mkdir -p $(RELEASE)
	@$(MAKE) wheel dist
	@$(MAKE) deb
	@cp $(DIST_AT)/mneme_rl-*-manylinux_*.whl $(DIST) $(DEB) $(RELEASE)/
	@if command -v $(CROSS)-gcc > /dev/null && [ -e /usr/lib/$(CROSS)/libluajit-5.1.so ]; then $(MAKE) release-aarch64; \
	  else echo "not made: the wheel and the tarball for aarch64 (docs/releasing.md says which packages)"; fi
	@cd bindings/python && python3 -B -c "import wheel_builder as w; print(w.build_sdist('$(abspath $(RELEASE))'))"
	@cd bindings/contract && python3 -B -c "import wheel_writer as w; print(w.build_wheel('$(abspath $(RELEASE))'))"
	@$(MAKE) release-check
release-aarch64: pip
	@PKG_CONFIG_LIBDIR=/usr/lib/$(CROSS)/pkgconfig:/usr/share/pkgconfig $(MAKE) CC=$(CROSS)-gcc RUN=qemu-aarch64 B=$(B)/aarch64 wheel dist
	@mkdir -p $(RELEASE)
	@cp $(B)/aarch64/dist/mneme_rl-*-manylinux_*_aarch64.whl $(B)/aarch64/dist/mneme-*-aarch64.tar.gz $(RELEASE)/
release-check:  ## check what make release made, once more (ROOTS=...)
	@bindings/release.sh $(RELEASE) $(ROOTS)

# What `luarocks make` asks for: an installation in a folder of the rock's own, for LuaRocks takes what a rock has in bin,
# lib and lua to places of its own; a module and a command that find it there.
install-rock: install
	@install -d $(ROCK)/lua $(ROCK)/bin
	@sed 's|@PREFIX@|$(PREFIX)|' bindings/rock.lua.in > $(ROCK)/lua/mneme.lua
	@printf '#!/bin/sh\nexec "%s/bin/mneme" "$$@"\n' '$(PREFIX)' > $(ROCK)/bin/mneme && chmod +x $(ROCK)/bin/mneme

# Pages that are made: the reference of all functions, and annotations for editors (.luarc.json).
docs: all       ## write build/api.md (all Lua functions) and build/library (for editors)
	@mkdir -p $(B)/library
	@$(B)/mneme help annotations > $(B)/library/mneme.lua
	@$(B)/mneme help api > $(B)/api.md
	@echo "$(B)/api.md $(B)/library/mneme.lua"

.PHONY: docs install uninstall deb dist dist-folder release release-aarch64 release-check pip wheel install-rock

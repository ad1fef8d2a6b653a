#!/bin/sh
# Checks for what the build needs. Missing packages are installed where that is allowed (root, or sudo that can ask);
# otherwise the one line to type is printed. Arguments: extra needs ("clang" for fuzzing; "chromium" to test the
# web page; "cross" to build and test for 64-bit ARM elsewhere, on Debian only).
set -u
here=$(mktemp -d) || exit 1
trap 'rm -rf "$here"' EXIT

have_header() { printf '#define PCRE2_CODE_UNIT_WIDTH 8\n#include <stdarg.h>\n#include <stddef.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <%s>\n' "$1" | ${CC:-cc} -E -x c - >"$here/out" 2>/dev/null; }

missing_cross() {
    command -v aarch64-linux-gnu-gcc >/dev/null 2>&1 || echo cross-gcc
    command -v qemu-aarch64-static >/dev/null 2>&1 || command -v qemu-aarch64 >/dev/null 2>&1 || echo cross-qemu
    case $(aarch64-linux-gnu-gcc -print-file-name=libcmocka.so 2>/dev/null) in */*) ;; *) echo cross-cmocka ;; esac
}

# What is missing, by neutral name.
missing() {
    command -v "${CC:-cc}" >/dev/null 2>&1 || { echo cc pcre2 libedit jansson libevent cmocka libvterm; return; }
    command -v make >/dev/null 2>&1 || echo make
    have_header pcre2.h || echo pcre2
    have_header histedit.h || echo libedit
    have_header jansson.h || echo jansson
    have_header event2/event.h || echo libevent
    have_header cmocka.h || echo cmocka
    have_header vterm.h || echo libvterm
    case " $* " in *" clang "*) command -v clang >/dev/null 2>&1 || echo clang ;; esac
    case " $* " in *" chromium "*) command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || echo chromium ;; esac
    case " $* " in *" cross "*) missing_cross ;; esac
}

# Package name of a neutral name for a package manager.
package() {
    case "$1/$2" in
    apt-get/cc) echo gcc libc6-dev ;;
    apt-get/cross-gcc) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
    apt-get/cross-qemu) echo qemu-user-static ;;
    apt-get/cross-cmocka) echo libcmocka-dev:arm64 ;;
    apk/cc) echo gcc musl-dev ;;
    brew/cc) echo gcc ;;
    */cc) echo gcc ;;
    */make | */clang | */chromium) echo "$2" ;;
    apt-get/*) case $2 in lib*) echo "$2-dev" ;; *) echo "lib$2-dev" ;; esac ;;
    dnf/cmocka) echo libcmocka-devel ;;
    dnf/*) echo "$2-devel" ;;
    apk/*) echo "$2-dev" ;;
    *) echo "$2" ;;
    esac
}

needs=$(missing "$@")
[ -z "$needs" ] && exit 0

manager=
for m in apt-get dnf pacman apk brew; do command -v $m >/dev/null 2>&1 && { manager=$m; break; }; done
if [ -z "$manager" ]; then
    echo "deps: please install (names differ by system): $(echo $needs)" >&2
    exit 1
fi
foreign=
case $needs in
*cross-*)
    # Elsewhere foreign packages have other names, or need other package sources than those of the system.
    grep -q '^ID=debian$' /etc/os-release 2>/dev/null || {
        echo "deps: for 64-bit ARM please install (names differ by system):" $needs >&2
        exit 1
    }
    foreign="dpkg --add-architecture arm64"
    ;;
esac
packages= lists=
for n in $needs; do packages="$packages $(package $manager "$n")"; done
case $manager in
apt-get) install="apt-get install -y$packages" lists="apt-get update -q" ;; # containers come without package lists
dnf) install="dnf install -y$packages" ;;
pacman) install="pacman -S --noconfirm --needed$packages" ;;
apk) install="apk add$packages" ;;
brew) install="brew install$packages" ;;
esac

root=
if [ "$manager" != brew ] && [ "$(id -u)" != 0 ]; then
    root="sudo "
    # Without a terminal sudo cannot ask; then it must be allowed without a password.
    if ! command -v sudo >/dev/null 2>&1 || { [ ! -t 0 ] && ! sudo -n true 2>/dev/null; }; then
        echo "deps: missing packages; as root type:  ${lists:+$lists && }$install" >&2
        exit 1
    fi
fi
echo "deps: ${foreign:+$root$foreign; }$root$install"
[ -z "$foreign" ] || $root$foreign || exit 1
[ -n "$lists" ] && $root$lists >"$here/out" 2>&1
if ! $root$install >"$here/out" 2>&1; then
    tail -n 5 "$here/out" >&2
    echo "deps: that failed; please type:  ${lists:+$root$lists && }$root$install" >&2
    exit 1
fi
left=$(missing "$@")
[ -z "$left" ] && exit 0
echo "deps: still missing after the installation: $(echo $left)" >&2
exit 1

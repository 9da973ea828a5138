#!/bin/sh
# What some tests need beside Python packages that always install. Each is tried once, and where it
# cannot be had its tests are skipped, loudly.
#   usage: tests/install_tools.sh PIP_INSTALL_COMMAND...

loud() {
    echo "!!! $1 COULD NOT BE INSTALLED: the tests that need it will be SKIPPED !!!" >&2
}

"$@" 'dp-accounting>=0.5' || loud dp-accounting

have_postgres() {
    command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}
have_chromium() {
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null
}
install() {
    { as_root apt-get update -qq && as_root apt-get install -y -qq --no-install-recommends "$1"; } >/dev/null 2>&1
}
have_postgres || install postgresql
have_postgres || loud PostgreSQL
have_chromium || install chromium
have_chromium || loud Chromium
exit 0

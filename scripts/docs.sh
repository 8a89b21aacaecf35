#!/bin/sh
# Build the documentation in English and in Chinese into build/site; any warning is an error.
# `scripts/docs.sh translate` brings the Chinese catalogues of docs/locale up to date first.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
command -v sphinx-build >/dev/null || {
    EXTRAS='[docs]'
    . scripts/setup.sh
}

build() { sphinx-build --quiet --fail-on-warning --keep-going --fresh-env "$@"; }

if [ "${1:-}" = translate ]; then
    build -b gettext docs build/gettext
    rm -rf build/gettext/zh_CN && mkdir build/gettext/zh_CN
    for catalogue in docs/locale/zh_CN/LC_MESSAGES/*.po; do
        mv "build/gettext/$(basename "$catalogue" .po).pot" build/gettext/zh_CN
    done
    sphinx-intl update --locale-dir docs/locale --pot-dir build/gettext/zh_CN --language zh_CN
    exit
fi
rm -rf build/site build/doctrees
build -b html docs build/site -d build/doctrees/en
build -b html -D language=zh_CN docs build/site/zh -d build/doctrees/zh
echo "build/site/index.html"

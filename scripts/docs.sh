#!/bin/sh
# Build the documentation in English and in Chinese into build/site; any warning is an error.
# `scripts/docs.sh translate` brings the Chinese catalogues of docs/locale up to date first, and
# makes those of pages that are new in TRANSLATED (docs/conf.py).
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
    for page in $(PYTHONPATH=docs python -c 'from conf import TRANSLATED; print(*TRANSLATED)'); do
        mv "build/gettext/${page%/}.pot" build/gettext/zh_CN
    done
    sphinx-intl update --locale-dir docs/locale --pot-dir build/gettext/zh_CN --language zh_CN \
        --line-width 100
    exit
fi
rm -rf build/site build/doctrees
build -b html docs build/site -d build/doctrees/en
build -b html -D language=zh_CN docs build/site/zh -d build/doctrees/zh
echo "build/site/index.html"

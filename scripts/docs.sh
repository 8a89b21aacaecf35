#!/bin/sh
# Build the documentation in English and in Chinese into build/site; any warning is an error.
# `scripts/docs.sh translate` brings the Chinese catalogues of docs/locale up to date first.
set -eu
cd "$(dirname "$0")/.."
command -v sphinx-build >/dev/null || {
    EXTRAS='[docs]'
    . scripts/setup.sh
    PATH="$PWD/.venv/bin:$PATH"
}

build() { sphinx-build --quiet --fail-on-warning --keep-going --fresh-env "$@"; }

if [ "${1:-}" = translate ]; then
    build -b gettext docs build/gettext
    (cd build/gettext && rm -rf pot && mkdir pot && mv index.pot guides.pot reference.pot project.pot quickstarts.pot operators.pot pot)
    sphinx-intl update --locale-dir docs/locale --pot-dir build/gettext/pot --language zh_CN
    exit
fi
rm -rf build/site build/doctrees
build -b html docs build/site -d build/doctrees/en
build -b html -D language=zh_CN docs build/site/zh -d build/doctrees/zh
echo "build/site/index.html"

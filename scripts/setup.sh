# shellcheck shell=sh
# Make .venv beside this folder and install the package into it as a user would, with uv where that
# is installed. Nothing is built if nothing has changed since: .venv/installed says what there was.
# Sourced by demo.sh, test.sh and docs.sh with the extras to install, if any: EXTRAS=[dev].

STAMP=.venv/installed

# Do a step, and print its name and how many seconds it took: timed NAME COMMAND...
timed() {
    printf '%s ... ' "$1" >&2
    begun=$(date +%s)
    shift
    "$@"
    printf '%d s\n' $(($(date +%s) - begun)) >&2
}

# Print the checksum of what the package is built from.
sources() {
    find src examples CMakeLists.txt pyproject.toml README.md LICENSE -type f \
        ! -name '*.pyc' ! -name '*.so' ! -name '*.pyd' -exec cksum {} + | sort | cksum
}

# Print the checksum of the names of what is installed, which have the versions in them.
packages() {
    find .venv/lib -maxdepth 3 -path '*/site-packages/*' ! -name __pycache__ 2>/dev/null | sort | cksum
}

# Return whether the stamp is of these sources and packages.
is_current() {
    [ -x .venv/bin/python ] && [ -f "$STAMP" ] &&
        [ "$(head -n 2 "$STAMP")" = "$(sources && packages)" ]
}

# Set the name of a Python that is new enough.
find_python() {
    for python in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$python" >/dev/null &&
            "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
            return
        fi
    done
    echo "tensorsplit needs Python 3.11 or newer; none was found on PATH" >&2
    exit 2
}

# Install what Debian takes out of Python: venv is a package of its own there.
add_venv() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null && return
    echo "installing python3-venv" >&2
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq || true # install says what is wrong
    if ! $sudo apt-get install -qq -y python3-venv >/dev/null; then
        echo "could not install the Debian package python3-venv; install it and run again" >&2
        exit 2
    fi
}

make_environment() {
    find_python
    if command -v uv >/dev/null && uv venv --quiet --seed --python "$python" .venv 2>/dev/null; then
        return
    fi
    add_venv
    "$python" -m venv .venv
}

# Install the package, and note what for; pip knows places of packages that uv may not know.
install_package() {
    extras=
    ! is_current || extras=$(tail -n +3 "$STAMP")
    rm -f "$STAMP"
    # shellcheck disable=SC2153 # EXTRAS is the script's that sources this
    if ! command -v uv >/dev/null || ! uv pip install --quiet --python .venv/bin/python \
        --reinstall-package tensorsplit ".$EXTRAS" 2>/dev/null; then
        .venv/bin/pip install --quiet --disable-pip-version-check ".$EXTRAS"
    fi
    { sources && packages && printf '%s\n' "$EXTRAS" ${extras:+"$extras"}; } >"$STAMP.new"
    mv "$STAMP.new" "$STAMP"
}

[ -x .venv/bin/pip ] || timed "environment in .venv" make_environment
if is_current && tail -n +3 "$STAMP" | grep -qxF -e "$EXTRAS"; then
    echo "tensorsplit$EXTRAS is installed already" >&2
else
    timed "tensorsplit$EXTRAS built and installed, the first time in one to three minutes" install_package
fi

# Make .venv beside this folder and install the package into it as a user would.
# Sourced by demo.sh and test.sh with the extras to install, if any: EXTRAS=[dev].

python=
for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null &&
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "tensorsplit needs Python 3.11 or newer; none was found on PATH" >&2
    exit 2
fi

# Debian ships venv as a package of its own.
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "installing python3-venv ..." >&2
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq && $sudo apt-get install -qq -y python3-venv >/dev/null || {
        echo "could not install the Debian package python3-venv; install it and run again" >&2
        exit 2
    }
fi

[ -x .venv/bin/pip ] || "$python" -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check ".$EXTRAS"

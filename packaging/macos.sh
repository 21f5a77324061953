#!/bin/sh
# Makes dist/Phasewright.app and dist/phasewright-VERSION-darwin-MACHINE.dmg, which need no Python.
# Needs Python 3.11 or newer from python.org or Homebrew, and the command line tools of Xcode.
#
#     sh packaging/macos.sh ["Developer ID Application: NAME (TEAM)"]
#
# With an identity, the app is signed before it is packed; without one, macOS asks before it starts the app.

set -eu
cd "$(dirname "$0")/.."

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "macos.sh: Phasewright needs Python 3.11 or newer; python3 is none" >&2
    exit 1
}
python3 dev.py freeze
if [ "$#" -gt 0 ]; then
    codesign --force --deep --options runtime --timestamp --entitlements packaging/macos-entitlements.plist \
        --sign "$1" dist/Phasewright.app
    codesign --verify --deep --strict dist/Phasewright.app
fi
python3 dev.py freeze --only-pack

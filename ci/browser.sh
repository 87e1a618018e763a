#!/usr/bin/env bash
# Makes sure that there is a browser for the test of the HTML page (harness/report/render): does nothing if one is there, else installs
# Debian's Chromium, as root. Where it cannot, the test is skipped and says so.
set -euo pipefail

say() { printf 'browser: %s\n' "$*"; }

for name in chromium chromium-browser google-chrome headless-shell; do
  command -v "$name" >/dev/null && { say "$name is there"; exit 0; }
done
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  say 'none, and this is not Debian as root: the page is not tested in a browser'
  exit 1
fi
log=$(mktemp)
say "installing chromium with apt-get (log: $log)"
export DEBIAN_FRONTEND=noninteractive
{ apt-get update -q && apt-get install -qy --no-install-recommends chromium fonts-dejavu-core; } >"$log" 2>&1 ||
  { tail -n 5 "$log" >&2; say 'apt-get could not install chromium, see above: the page is not tested in a browser'; exit 1; }
say "installed $(chromium --version)"

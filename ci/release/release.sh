#!/usr/bin/env bash
# Makes the files of a release in _release, from a clean checkout of its tag: release.sh VERSION 'amd64 arm64'. The same commit and Go give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$1 archs=$2 out=_release
fail() { echo "release: $*" >&2; exit 2; }

[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?$ ]] || fail "VERSION '$version': expected vMAJOR.MINOR.PATCH"
[ -z "$(git status --porcelain)" ] || fail "the checkout has changes: commit or remove them (git status)"
git tag --points-at HEAD | grep -qxF "$version" || fail "HEAD has no tag $version: git tag $version, or git checkout $version"
for arch in $archs; do [[ $arch =~ ^(amd64|arm64)$ ]] || fail "ARCHS: '$arch': expected amd64 or arm64"; done

created=$(git log -1 --format=%ct)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out" "$work/completions"
go build -ldflags '-s -w' -o "$work/" ./cmd/kmsharness ./cmd/kms-conformance
for program in kmsharness kms-conformance; do
  for shell in bash zsh fish; do "$work/$program" completion "$shell" > "$work/completions/$program.$shell"; done
done
for arch in $archs; do
  name=kmsharness-$version-linux-$arch
  mkdir -p "$work/$name/bin"
  export GOOS=linux GOARCH=$arch
  go build -ldflags '-s -w' -o "$work/$name/bin/" ./cmd/... github.com/onsi/ginkgo/v2/ginkgo
  go test -c -ldflags '-s -w' -o "$work/$name/bin/scenarios.test" ./scenarios
  unset GOOS GOARCH
  cp -r LICENSE README.md CHANGELOG.md "$work/completions" "$work/$name/"
  tar --sort=name --mtime="@$created" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C "$work" -cf - "$name" | gzip -n > "$out/$name.tar.gz"
  go run ./ci/images/build --bin "$work/$name/bin" --out "$work/images-$arch" > /dev/null
  for image in "$work/images-$arch"/*.tar; do cp "$image" "$out/image-$(basename "$image" .tar)-$version-linux-$arch.tar"; done
done
go run ./ci/release --version "$version" --created "$created" --programs "$work" --out "$out"
(cd "$out" && sha256sum -- * > checksums.txt)
(cd "$out" && ls -l)

// Package archive assembles container images from a static program each, without an engine and without a registry, and
// writes them as archives that containerd and Docker both import.
//
// It is pure: the same program gives the same bytes, on every machine, so a digest says what is in an image. What does not
// live here: which images there are (ci/images), and reading or writing files (ci/images/build).
package archive

// Command large writes a scenario with many objects: a full switch of the encryption through every type, with API servers that are killed
// at random points. It is no part of the catalogue, because it takes minutes (make large).
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	seed := flag.Uint64("seed", 1, "of what is killed, and when")
	objects := flag.Int("objects", 10_000, "secrets that are written at the beginning")
	spread := flag.Duration("spread", 0, "kills come within this time of the beginning of a switch; 0: as long as a switch of so many objects takes, about")
	flag.Parse()
	text, err := plan{seed: *seed, objects: *objects, spread: *spread}.scenario().Encode()
	if err != nil {
		fmt.Fprintln(os.Stderr, "large:", err)
		os.Exit(1)
	}
	os.Stdout.Write(text)
}

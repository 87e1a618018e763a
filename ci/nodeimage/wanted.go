package main

import (
	"context"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/backend/kind/image"
)

// wanted is what shall be in the engine: two names, and the inputs that they shall be made of.
type wanted struct {
	node, balancer string
	hash           string
	kind           kindModule
}

func findWanted(ctx context.Context) (wanted, error) {
	kind, err := downloadKind(ctx)
	if err != nil {
		return wanted{}, err
	}
	w := wanted{kind: kind}
	if w.balancer, err = kind.balancerImage(); err != nil {
		return wanted{}, err
	}
	if w.node, err = image.Built(); err != nil {
		return wanted{}, err
	}
	var programs []assets.Programs
	for _, set := range []assets.Set{assets.Node, assets.CoreDNS} {
		p, err := assets.Describe(set)
		if err != nil {
			return wanted{}, err
		}
		programs = append(programs, p)
	}
	w.hash, err = hash(recipeFiles, kind, programs...)
	return w, err
}

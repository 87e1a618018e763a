package sidecar

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// change is one argument that was set, as it stands in the list of arguments.
type change struct {
	Set string `json:"set"`
	// Before is the argument that it replaced; empty if it was added.
	Before string `json:"before,omitempty"`
}

// setFlag sets a flag where it stands, or behind all others.
func setFlag(c *corev1.Container, f Flag) (change, error) {
	done := change{Set: "--" + f.Name + "=" + f.Value}
	at, err := findFlag(c, f.Name)
	if err != nil {
		return done, err
	}
	if at != nil {
		done.Before, *at = *at, done.Set
		return done, nil
	}
	list := &c.Command // kubeadm's place for flags
	if len(c.Args) > 0 {
		list = &c.Args
	}
	*list = append(*list, done.Set)
	return done, nil
}

// findFlag is the place of a flag; nil if it is not set.
func findFlag(c *corev1.Container, name string) (found *string, err error) {
	for _, list := range [][]string{c.Command, c.Args} {
		for i := range list {
			written, _, whole := strings.Cut(strings.TrimLeft(list[i], "-"), "=")
			// Kubernetes reads an underscore in the name of a flag as a dash.
			if !strings.HasPrefix(list[i], "-") || strings.ReplaceAll(written, "_", "-") != strings.ReplaceAll(name, "_", "-") {
				continue
			}
			switch {
			case found != nil:
				return nil, fmt.Errorf("flag %s of %s stands there twice: which one is to be replaced is not clear", name, c.Name)
			case !whole && i+1 < len(list) && !strings.HasPrefix(list[i+1], "-"):
				return nil, fmt.Errorf("flag %s of %s has its value in an argument of its own: write it as --%s=VALUE", name, c.Name, name)
			}
			found = &list[i]
		}
	}
	return found, nil
}

// unset undoes a change, unless somebody has changed the argument since: then it is theirs.
func (done change) unset(c *corev1.Container) {
	for _, list := range []*[]string{&c.Command, &c.Args} {
		i := slices.Index(*list, done.Set)
		if i < 0 {
			continue
		}
		if done.Before != "" {
			(*list)[i] = done.Before
		} else {
			*list = slices.Delete(*list, i, i+1)
		}
		return
	}
}

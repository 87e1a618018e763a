package sidecar

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// setFlag sets a flag where it stands, or behind all others.
func setFlag(c *corev1.Container, f Flag) error {
	text := "--" + f.Name + "=" + f.Value
	at, err := findFlag(c, f.Name)
	switch {
	case err != nil:
		return err
	case at != nil:
		*at = text
	case len(c.Args) > 0:
		c.Args = append(c.Args, text)
	default: // kubeadm's place for flags
		c.Command = append(c.Command, text)
	}
	return nil
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

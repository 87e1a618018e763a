// Package control is the HTTP API that observes a fake plugin and injects its faults. openapi.yaml describes the API; a
// test compares the description with the server. Package client is its Go client.
package control

import (
	"context"
	_ "embed"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
)

//go:embed openapi.yaml
var openAPI []byte

// Keys are what the plugin knows of, and may do with, its remote key.
type Keys interface {
	Rotate(ctx context.Context, reuse int) (keyring.KEK, error)
	Notice(ctx context.Context) error
	SetNoticeLag(time.Duration) error
	Key() string // its name, empty if the plugin does not know it
	View() plugin.View
}

// The bodies of the API that are not another package's.
type (
	// KeysAnswer is what the plugin knows of its remote key.
	KeysAnswer struct {
		Key     string        `json:"key"`
		Noticed keyring.KEK   `json:"noticed"`
		Latest  keyring.KEK   `json:"latest"`
		KEKs    []keyring.KEK `json:"keks"`
		Problem string        `json:"problem,omitempty"`
	}
	// RotateRequest asks for a new KEK.
	RotateRequest struct {
		Reuse  int  `json:"reuse,omitempty"`  // make this old version current again instead
		Notice bool `json:"notice,omitempty"` // this plugin notices at once, whatever its lag
	}
	// NoticeLag is how late the plugin notices a rotation, such as "30s".
	NoticeLag struct {
		Lag string `json:"lag"`
	}
	// Profile names the provider that the plugin stands for; empty: none.
	Profile struct {
		Profile string `json:"profile"`
	}
	Released struct {
		Released []string `json:"released"` // ids
	}
)

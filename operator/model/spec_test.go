package model_test

import (
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/core"
)

// specs are configurations that an administrator may set: every type, two keys of a KMS, the second also with another image, one that
// does not pass its check, one that is invalid, one without credentials.
func specs() []core.Wanted {
	want := func(t config.Type, p config.Plugin) core.Wanted {
		return core.Wanted{Wanted: config.Wanted{Type: t, KMS: p}}
	}
	without := want(config.KMS, vault("c", "image"))
	without.Missing = []string{"Secret/approle"}
	return []core.Wanted{
		want(config.Identity, config.Plugin{}), want(config.AESCBC, config.Plugin{}), want(config.AESGCM, config.Plugin{}),
		want(config.KMS, vault("a", "image")), want(config.KMS, vault("b", "image")), want(config.KMS, vault("b", "other")),
		want(config.KMS, vault(badKey, "image")), {Invalid: `spec.encryption.type: "rot13" is unknown`}, without,
	}
}

const badKey = "bad"

// vault is a plugin for a key, with an image. They are well-formed, so there is no error.
func vault(key, image string) config.Plugin {
	p, err := config.NewPlugin("Vault", image, map[string]string{"vaultAddress": "https://vault.example.com", "vaultKeyPath": "transit/keys/" + key,
		"authentication.type": "AppRole", "authentication.appRole.secret.name": "approle"})
	if err != nil {
		return config.Plugin{Provider: fmt.Sprint(err)}
	}
	return p
}

// bad says whether a plugin does not work with its KMS.
func bad(p config.Plugin) bool { return strings.HasSuffix(p.Settings()["vaultKeyPath"], "/"+badKey) }

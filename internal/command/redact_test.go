package command

import "testing"

func TestRedacted(t *testing.T) {
	for text, want := range map[string]string{
		"plugin --listen {endpoint} --token=s3cr3t":              "plugin --listen {endpoint} --token=REDACTED",
		"plugin --vault-token s.abc --verbose":                   "plugin --vault-token REDACTED --verbose",
		"env VAULT_TOKEN=s.abc plugin":                           "env VAULT_TOKEN=REDACTED plugin",
		"plugin -approle-secret-id 4f2 -x":                       "plugin -approle-secret-id REDACTED -x",
		`sh -c 'plugin --password "a b" --pin=1234'`:             `sh -c 'plugin --password REDACTED --pin=REDACTED'`,
		"plugin --token-file /t -approle-secret-id-path /etc/x":  "plugin --token-file /t -approle-secret-id-path /etc/x",
		"plugin --token {token} --secret $SECRET --token --next": "plugin --token {token} --secret $SECRET --token --next",
		"rotate the secret of node cp-1":                         "rotate the secret of node cp-1",
	} {
		if got := Redacted(text); got != want {
			t.Errorf("Redacted(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestShown(t *testing.T) {
	if got, want := Shown([]string{"rotate", "--password", "a b", "it's"}), "rotate --password REDACTED it's"; got != want {
		t.Errorf("Shown = %q, want %q", got, want)
	}
}

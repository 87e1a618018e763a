package health

import "github.com/kmsharness/kmsharness/conformance"

func operatorRules() []Check {
	return []Check{
		runs("HO", "The operator").in("operator-initial-configuration"),
		{
			Check: conformance.Check{
				ID: "HO-READ-BEFORE-WRITE", Profile: conformance.Core, Title: "No key writes before all can read it",
				Rule:        "No API server is configured to write with a key before every other can read with it.",
				Source:      sourceSwitch + " (S3-04, S3-09)",
				Consequence: "API servers answer reads with errors.",
			},
			Claims:    []Claim{seen("SWITCH-ORDER", "was told to write with")},
			Scenarios: []string{"operator-kms-to-kms", "operator-version-skew"},
		},
		{
			Check: conformance.Check{
				ID: "HO-KEPT-UNTIL-MIGRATED", Profile: conformance.Core, Title: "No key goes before all is written anew",
				Rule:        "No provider is taken out of a configuration while an object may lie under it.",
				Source:      sourceSwitch + " (S3-07, S3-21)",
				Consequence: "Objects that nobody has written since cannot be read.",
			},
			Claims:    []Claim{seen("SWITCH-ORDER", ", without ")},
			Scenarios: []string{"operator-kms-to-kms", "operator-initial-configuration"},
		},
		{
			Check: conformance.Check{
				ID: "HO-PLUGINS-END-LAST", Profile: conformance.Core, Title: "Reporters end before plugins, plugins after their API server",
				Rule:        "A plugin ends when its API server has loaded a configuration without it, and when the reporter of its node no longer asks it.",
				Source:      sourceSwitch + " (S0-14, S3-04)",
				Consequence: "Each switch ends with alarms, or with objects that cannot be read.",
			},
			Claims:    []Claim{invariant("SWITCH-ORDER")},
			Scenarios: []string{"operator-kms-to-kms", "operator-downgrade-after-migrating-away"},
		},
		{
			Check: conformance.Check{
				ID: "HO-NO-DATA-LOSS", Profile: conformance.Core, Title: "No object is lost",
				Rule:        "Each object reads back unchanged, through switch, rotation, crash and pruning, under the key that was configured when it was written.",
				Source:      sourceSwitch + " (S3-06, S3-21)",
				Consequence: "Data is lost.",
			},
			Claims:    []Claim{invariant("NO-DATA-LOSS")},
			Scenarios: []string{"operator-prunes", "operator-kms-to-kms"},
		},
		{
			Check: conformance.Check{
				ID: "HO-MIGRATES", Profile: conformance.Core, Title: "All objects follow a new configuration",
				Rule:        "After a new configuration every object is written anew under its key, and plugins start before their reporters.",
				Source:      "docs/lifecycle.md (S3-01, S3-04, S3-21)",
				Consequence: "Objects that nobody writes stay under the old key for ever.",
			},
			Claims: []Claim{seen("SWITCH-ORDER", "was said to be written anew"), steps("operator-initial-configuration")},
		},
		{
			Check: conformance.Check{
				ID: "HO-SWITCH", Profile: conformance.Core, Title: "From one KMS to another and back",
				Rule:        "Pods have both plugins until no object is left under the old key.",
				Source:      "docs/lifecycle.md (S0-04, S3-07)",
				Consequence: "While data moves nobody can read the old one's.",
			},
			Claims: []Claim{steps("operator-kms-to-kms")},
		},
		{
			Check: conformance.Check{
				ID: "HO-KEK-ROTATION", Profile: conformance.Core, Title: "A rotated KEK is followed",
				Rule:        "When all nodes agree on a new KEK, all is encrypted anew under it, without a new key secret.",
				Source:      "docs/lifecycle.md (S0-20, S3-07)",
				Consequence: "Everything stays under the old KEK, which somebody will delete.",
			},
			Claims: []Claim{steps("operator-kek-rotation")},
		},
		{
			Check: conformance.Check{
				ID: "HO-CONVERGENCE", Profile: conformance.Core, Title: "Converged means all nodes, fresh and healthy",
				Rule:        "The operator notes that all nodes agree on a KEK only when each freshly reports it of a healthy plugin.",
				Source:      sourceAggregator + " (S0-20, S3-07)",
				Consequence: "An API server that is left out writes under the old KEK, and somebody deletes that.",
			},
			Claims:    []Claim{invariant("OPERATOR-CONVERGENCE")},
			Scenarios: []string{"operator-kek-rotation-held-back"},
		},
		{
			Check: conformance.Check{
				ID: "HO-PREFLIGHT", Profile: conformance.Core, Title: "A KMS is tried before it is used",
				Rule:        "A KMS that denies access is found before a key is made, and the switch goes on when the KMS does.",
				Source:      "docs/lifecycle.md (S3-17)",
				Consequence: "The first to try a new configuration is the API server.",
			},
			Claims: []Claim{steps("operator-preflight-fails")},
		},
		{
			Check: conformance.Check{
				ID: "HO-INVALID", Profile: conformance.Core, Title: "An invalid configuration changes nothing",
				Rule:        "A configuration that the operator refuses is a condition, and what was in force stays in force.",
				Source:      "docs/lifecycle.md (S3-01, S3-04)",
				Consequence: "A typing error decrypts the data of the cluster.",
			},
			Claims: []Claim{steps("operator-invalid-configuration")},
		},
		{
			Check: conformance.Check{
				ID: "HO-CREDENTIALS", Profile: conformance.Extended, Title: "Missing credentials block nothing else",
				Rule:        "Without its credentials no plugin is started, the administrator is warned, and another configuration is followed.",
				Source:      "docs/lifecycle.md (S3-01, S3-10)",
				Consequence: "Nothing else is done until somebody makes a secret.",
			},
			Claims: []Claim{steps("operator-credentials-missing")},
		},
		{
			Check: conformance.Check{
				ID: "HO-RESUMES", Profile: conformance.Core, Title: "An operator that was killed goes on",
				Rule:        "An operator that is killed in the middle of a switch goes on from what it finds.",
				Source:      "docs/lifecycle.md (S3-04, S3-21)",
				Consequence: "A switch stays half done until somebody repairs it.",
			},
			Claims: []Claim{steps("operator-killed-in-a-switch")},
		},
		{
			Check: conformance.Check{
				ID: "HO-SKEW", Profile: conformance.Extended, Title: "API servers may be a revision apart",
				Rule:        "An API server that stays behind by a revision has the newest plugins and reads what the others write.",
				Source:      "docs/lifecycle.md (S3-05, S3-09)",
				Consequence: "A slow roll-out of one node breaks its reads.",
			},
			Claims: []Claim{steps("operator-version-skew")},
		},
		{
			Check: conformance.Check{
				ID: "HO-DOWNGRADE", Profile: conformance.Extended, Title: "Away from KMS nothing is left",
				Rule:        "After the migration away from KMS the plugins end, and all works without operator and KMS.",
				Source:      "docs/lifecycle.md (S3-19, S0-14)",
				Consequence: "Each KMS that was ever used still has its credentials on every node.",
			},
			Claims: []Claim{steps("operator-downgrade-after-migrating-away")},
		},
		{
			Check: conformance.Check{
				ID: "HO-PRUNES", Profile: conformance.Extended, Title: "Old keys are pruned, and not too early",
				Rule:        "Keys and revisions that nothing needs are removed, and no other.",
				Source:      "docs/lifecycle.md (S3-07)",
				Consequence: "Secrets grow without bound, or a key is removed that data needs.",
			},
			Claims: []Claim{steps("operator-prunes")},
		},
		{
			Check: conformance.Check{
				ID: "HO-NEW-NODE", Profile: conformance.Extended, Title: "A node that joins in a switch is up to date",
				Rule:        "A node that is added during a switch gets the newest configuration and all plugins.",
				Source:      "docs/lifecycle.md (S3-04)",
				Consequence: "The API server of the new node cannot read what was written since.",
			},
			Claims: []Claim{steps("operator-node-added-during-a-switch")},
		},
		otherRules("HO", "the operator", "ACCEPTED", "FALSE-HEALTHY", "FALSE-ALARM", "DETECTION", "RECOVERY", "STALE-UNKNOWN", "ABSENCE-IS-NOT-BROKEN", "NO-ORPHAN", "NO-RESURRECTION", "OWNERSHIP", "MONOTONIC",
			"FRESH-ONLY", "CADENCE", "TRUTHFUL-PROBE", "FORMAT", "ROLLUP-TRUTH", "QUIET", "UNION", "CONVERGENCE", "UID", "LEAST-PRIVILEGE", "STREAM-TRUTH", "KEY-ID-STABLE", "NOTHING-SECRET", "NO-FORGED-EXCUSE", "NOTHING-RAN").in("operator-initial-configuration"),
	}
}

package health

import "github.com/kmsharness/kmsharness/conformance"

// reporterProbes are the rules about how a reporter calls plugins.
func reporterProbes() []Check {
	return []Check{
		{
			Check: conformance.Check{
				ID: "HR-PROBE-DEADLINE", Profile: conformance.Core, Title: "Each probe has a deadline",
				Rule:        "A Status call that is not answered ends at the read timeout, and is reported as an error that names the deadline.",
				Source:      sourceReporter + ", probes (S0-05, S0-08, S3-13)",
				Consequence: "One plugin that hangs silences its node.",
			},
			Claims: []Claim{
				{Invariant: "CADENCE", In: []string{"plugin-hangs"}, Seen: []string{"wrote nothing for"}}, during("TRUTHFUL-PROBE", "plugin-hangs"), steps("plugin-hangs"),
			},
		},
		{
			Check: conformance.Check{
				ID: "HR-PROBES-CONCURRENT", Profile: conformance.Core, Title: "Plugins are probed at the same time",
				Rule:        "Status is called on all plugins of the node concurrently: the deadlines of plugins that hang do not add up.",
				Source:      sourceReporter + ", probes (S0-04, S0-07)",
				Consequence: "With several plugins that hang the report comes too late, and is stale.",
			},
			Claims: []Claim{
				{Invariant: "CADENCE", In: []string{"plugins-hang-together"}, Seen: []string{"wrote nothing for"}}, during("TRUTHFUL-PROBE", "plugins-hang-together"), steps("plugins-hang-together"),
			},
		},
		{
			Check: conformance.Check{
				ID: "HR-HANG-HIDES-NOTHING", Profile: conformance.Core, Title: "A plugin that hangs hides no other",
				Rule:        "Of two plugins of a node the one that hangs neither delays nor changes the entry of the other.",
				Source:      sourceReporter + ", probes (S0-04, S0-08)",
				Consequence: "The state of the write key is unknown because an old key's plugin hangs.",
			},
			Claims: []Claim{
				{Invariant: "CADENCE", In: []string{"plugin-hangs-beside-another"}, Seen: []string{"wrote nothing for"}}, during("TRUTHFUL-PROBE", "plugin-hangs-beside-another"), steps("plugin-hangs-beside-another"),
			},
		},
		{
			Check: conformance.Check{
				ID: "HR-ALL-PLUGINS", Profile: conformance.Core, Title: "One report has all plugins",
				Rule:        "A report has one entry for each plugin of --kms-sockets, in that order, the write key first, also for plugins that fail.",
				Source:      sourceReporter + ", message (S0-01, S0-04)",
				Consequence: "The failing plugin is not reported, or a read key is taken for the write key.",
			},
			Claims: []Claim{seen("TRUTHFUL-PROBE", "one entry for each plugin")}, Scenarios: []string{"plugin-hangs-beside-another", "second-plugin-added"},
		},
		{
			Check: conformance.Check{
				ID: "HR-SOCKETS-LISTED", Profile: conformance.Core, Title: "Only plugins of --kms-sockets are reported",
				Rule:        "A reporter does not discover sockets: a plugin that it was not given is in no report.",
				Source:      sourceReporter + " (S0-02)",
				Consequence: "A plugin of another revision, which no API server uses, degrades the cluster.",
			},
			Claims: []Claim{{Invariant: "TRUTHFUL-PROBE", In: []string{"unlisted-plugin"}, Seen: []string{"one entry for each plugin"}}, steps("unlisted-plugin")},
		},
		{
			Check: conformance.Check{
				ID: "HR-SOCKETS-CHANGED", Profile: conformance.Extended, Title: "A plugin that is added or removed is followed",
				Rule:        "A reporter that is started with other sockets reports exactly these, and leaves no entry of a plugin that it no longer has.",
				Source:      sourceReporter + " (S0-02, S0-04)",
				Consequence: "A migration between two keys is never seen to begin or to end.",
			},
			Claims: []Claim{steps("second-plugin-added")},
		},
		{
			Check: conformance.Check{
				ID: "HR-LAST-CHECKED", Profile: conformance.Core, Title: "lastChecked is the time of that probe",
				Rule:        "At lastChecked the plugin was called: it is the time of that probe and not that of the write.",
				Source:      sourceReporter + ", message (S0-07, S0-08)",
				Consequence: "An old result looks fresh, and a plugin whose probe is stuck is never seen to be stale.",
			},
			Claims: []Claim{seen("TRUTHFUL-PROBE", "has no Status call at that time")}, Scenarios: []string{"plugin-hangs-beside-another", "steady-state"},
		},
		{
			Check: conformance.Check{
				ID: "HR-NO-BACK-OFF", Profile: conformance.Extended, Title: "A plugin that was away for long is seen at once",
				Rule:        "After half a minute of failures a plugin that is back is reported as healthy within the recovery bound: neither the reporter nor its connection has backed off.",
				Source:      sourceTiming + " (S3-13, S3-18)",
				Consequence: "An alarm lasts for minutes after its cause is gone.",
			},
			Claims: []Claim{during("RECOVERY", "plugin-away-for-long"), during("CADENCE", "plugin-away-for-long"), during("TRUTHFUL-PROBE", "plugin-away-for-long"), steps("plugin-away-for-long")},
		},
		{
			Check: conformance.Check{
				ID: "HR-PLUGIN-RESTART", Profile: conformance.Core, Title: "A plugin that was restarted is reached again",
				Rule:        "A dead socket is an error that names Unavailable; when the plugin listens again, it is healthy at the next tick.",
				Source:      sourceReporter + ", probes (S3-14, S0-05)",
				Consequence: "After the first restart of a plugin the node is reported as broken for ever.",
			},
			Claims: []Claim{during("TRUTHFUL-PROBE", "plugin-crashes-and-returns"), during("RECOVERY", "plugin-crashes-and-returns"), steps("plugin-crashes-and-returns")},
		},
	}
}

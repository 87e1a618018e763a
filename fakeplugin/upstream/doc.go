// Package upstream is the plugin in front of another KMS v2 plugin: it passes every call on, and every answer back, unchanged. Package
// server serves it with faults and a journal. Knowledge of keys is limited to the key_ids that the other plugin has named.
package upstream

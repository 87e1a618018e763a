// Package alerts tests the alerting rules beside it with Prometheus' own rule engine. Its test files have the format of promtool
// test rules, and its rule files that of the prometheus-operator, which promtool does not read.
//
// It is a module of its own: go test in this folder, or make alerts.
package alerts

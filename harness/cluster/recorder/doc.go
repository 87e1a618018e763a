// Package recorder has everything that observes a scenario from outside: files that API servers and plugins write, watches, metrics, sockets. What it records
// is what the checker judges by. It hands over events through a Gate, in an order that a seed decides where time is virtual.
package recorder

// Package command is the aggregator's command line: flags, their validation, logging, metrics and health endpoints,
// and a clean end on a signal. What the aggregator does is in aggregator/controller.
package command

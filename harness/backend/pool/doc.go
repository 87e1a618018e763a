// Package pool keeps control planes between scenarios, for backends that take seconds or minutes to boot one. It resets
// and reuses an idle control plane that fits, and ends one that a scenario has made dirty.
//
// The backend boots, resets and ends control planes, and decides which scenarios fit. harness/backend/live has the
// environments.
package pool

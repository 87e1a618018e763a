// Package pool keeps control planes between scenarios, for backends whose planes take seconds or minutes to boot: an idle one
// that fits is reset and used again, one that a scenario has spoiled is ended.
//
// How a plane is booted, reset and ended, and which scenarios it fits, is the backend's; what an environment on it does is
// harness/backend/live's.
package pool

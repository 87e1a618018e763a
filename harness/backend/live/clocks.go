package live

// NoClocks is why a scenario that sets clocks cannot run where processes are real.
const NoClocks = "a clock that is set: all processes share the clock of the machine, and the recorders go by it"

// Package trial runs mutants, each with the scenario that brings it out, and judges whether they were caught: by what each names for
// itself, at an instant, with a command that shows it again. A crash, a time-out or a run that could not be made catches nothing.
// The mistakes themselves are in scenarios/mutants.
package trial

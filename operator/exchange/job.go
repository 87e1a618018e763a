package exchange

// Job is one thing at a time beside an operator, such as a migration. The zero value has never run. It is not safe for concurrent use.
type Job[R any] struct {
	// Result is that of the last one that has ended, or what is said of the one that runs.
	Result R
	runs   bool
	serial int
}

// Runs says whether one is under way.
func (j *Job[R]) Runs() bool { return j.runs }

// Begin is a new one, which takes the place of what runs. Its number tells it apart from those before.
func (j *Job[R]) Begin(first R) (serial int) {
	j.Result, j.runs = first, true
	j.serial++
	return j.serial
}

// End keeps the result of one, unless another one was begun since.
func (j *Job[R]) End(serial int, result R) (kept bool) {
	if j.serial != serial {
		return false
	}
	j.Result, j.runs = result, false
	return true
}

// Forget takes the result back.
func (j *Job[R]) Forget() {
	var none R
	j.Result = none
}

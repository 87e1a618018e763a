package plugin

// stopped is the panic of must: the error with which a check ends.
type stopped struct{ error }

// must ends the check, or what else caught runs, if err is not nil. It does so as FailNow ends a test: a check is a row of calls, and each may be its
// finding. It is for the goroutine of the check. What restores something calls the rest of the check by caught.
func must(err error) {
	if err != nil {
		panic(stopped{err})
	}
}

// need is must for a call that returns a value.
func need[V any](v V, err error) V {
	must(err)
	return v
}

// caught returns the error that f returns, or with which must ended it.
func caught(f func() error) (err error) {
	defer func() {
		switch end := recover().(type) {
		case nil:
		case stopped:
			err = end.error
		default:
			panic(end)
		}
	}()
	return f()
}

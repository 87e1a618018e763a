// Package outside builds and tests a module outside this one, as its users do: a scenario, an invariant, a plugin fault and controllers of
// their own. See testdata/module.
package outside

// Package outside builds and tests a module outside this one, as its users do: a scenario, an invariant and a plugin fault of
// their own. See testdata/module.
package outside

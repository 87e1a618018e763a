package invariants

// Codes of rules, with the invariants that say what they demand (Invariant.Rules).
const (
	ruleSilent        = "silent" // CADENCE
	ruleFrequent      = "too-frequent"
	ruleLockstep      = "lockstep"
	ruleTries         = "tries"
	ruleCondition     = "condition-status" // FORMAT
	ruleTransition    = "transition-time"
	ruleMinified      = "minified"
	ruleTime          = "last-checked"
	ruleBound         = "bound" // also ROLLUP-TRUTH
	rulePrintable     = "printable"
	ruleDetail        = "detail"
	ruleErrorKEKID    = "error-kek-id"
	rulePlugins       = "plugins" // TRUTHFUL-PROBE
	ruleLastChecked   = "no-call"
	ruleKEKID         = "kek-id"
	ruleErrorCode     = "error-code"
	ruleHealthz       = "healthz"
	ruleUnusable      = "unusable-ok"
	ruleManager       = "manager" // OWNERSHIP
	ruleManagerStable = "manager-stable"
	ruleForce         = "force"
	ruleApply         = "apply" // LEAST-PRIVILEGE
	ruleForeign       = "foreign"
	ruleMalformed     = "malformed" // ROLLUP-TRUTH
	ruleClockSkew     = "clock-skew"
	ruleAvailable     = "available"
	ruleProgressing   = "progressing"
	ruleReasons       = "reasons"    // also CONVERGENCE, FALSE-ALARM
	ruleReadFirst     = "read-first" // SWITCH-ORDER
	ruleKept          = "kept"
	ruleMigrated      = "migrated"
	ruleAttempt       = "attempt"     // OPERATOR-CONVERGENCE
	ruleBroken        = "true"        // ABSENCE-IS-NOT-BROKEN
	ruleReports       = "reports"     // UNION
	ruleRestraint     = "restraint"   // QUIET
	ruleLastWrites    = "last-writes" // NO-RESURRECTION
	ruleRemoval       = "removal"
)

// houseReasons is a rule of three invariants.
const houseReasons = "the reasons of the rollups, and which of several is shown"

package history

import (
	"maps"
	"slices"
	"strconv"
)

func (w *encoder) action(a *Action) error {
	w.raw(`{"id":`).string(a.ID).raw(`,"verb":`).string(a.Verb).optional(`,"target":`, a.Target)
	if len(a.Params) > 0 {
		if err := w.raw(`,"params":`).params(a.Params); err != nil {
			return err
		}
	}
	w.raw(`,"state":`).string(a.State).optional(`,"error":`, a.Error).raw("}")
	return nil
}

// params are nearly always texts and numbers; what else there is is left to the library.
func (w *encoder) params(all map[string]any) error {
	for i, name := range slices.Sorted(maps.Keys(all)) {
		w.raw(separator(i, "{")).string(name).raw(":")
		switch value := all[name].(type) {
		case string:
			w.string(value)
		case int:
			w.int(int64(value))
		case bool:
			w.raw(strconv.FormatBool(value))
		default:
			if err := w.any(value); err != nil {
				return err
			}
		}
	}
	w.raw("}")
	return nil
}

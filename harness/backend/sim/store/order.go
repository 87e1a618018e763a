package store

// mergedOrder is the order in which the merge code puts the items of a list map and of an apply to it: the list's stay
// where they are, those that both have come in the order of the apply, and new ones after what the list has before the next
// that both have.
func mergedOrder(list, apply []string) []string {
	inList, inApply := setOf(list), setOf(apply)
	var shared []string
	for _, k := range apply {
		if inList[k] {
			shared = append(shared, k)
		}
	}
	out := make([]string, 0, len(list)+len(apply))
	merged := map[string]bool{}
	for i, j := 0, 0; i < len(list) || j < len(apply); {
		if i < len(list) && j < len(apply) {
			if list[i] == apply[j] {
				merged[list[i]] = true
				out = append(out, list[i])
				shared = rest(shared)
				i, j = i+1, j+1
				continue
			}
			if inApply[list[i]] && len(shared) > 0 && shared[0] != list[i] {
				i++ // it comes later, where the apply has it
				continue
			}
		}
		if i < len(list) {
			if !inApply[list[i]] {
				out = append(out, list[i])
				i++
				continue
			}
			if merged[list[i]] {
				i++
			}
		}
		if j < len(apply) {
			merged[apply[j]] = true
			out = append(out, apply[j])
			if len(shared) > 0 && shared[0] == apply[j] {
				shared = rest(shared)
			}
			j++
		}
	}
	return out
}

func rest(s []string) []string {
	if len(s) == 0 {
		return nil
	}
	return s[1:]
}

func setOf(keys []string) map[string]bool {
	out := make(map[string]bool, len(keys))
	for _, k := range keys {
		out[k] = true
	}
	return out
}

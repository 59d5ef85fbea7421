package trace

// densest is the number below which ids are bits of one array.
const densest = 1 << 28

// idSet knows which jobs there were.
type idSet struct {
	bits   []uint64
	sparse map[int64]struct{}
	names  map[string]struct{}
}

// seen tells whether there was such a job, and remembers it. A name tells more
// than a number does.
func (s *idSet) seen(id int64, name string) bool {
	switch {
	case name != "":
		return seen(&s.names, name)
	case id < 0 || id >= densest:
		return seen(&s.sparse, id)
	}
	at, bit := int(id/64), uint64(1)<<(id%64)
	if at >= len(s.bits) {
		s.bits = append(s.bits, make([]uint64, at+1-len(s.bits))...)
	}
	before := s.bits[at]&bit != 0
	s.bits[at] |= bit
	return before
}

func seen[K comparable](set *map[K]struct{}, key K) bool {
	if *set == nil {
		*set = map[K]struct{}{}
	}
	before := len(*set)
	(*set)[key] = struct{}{}
	return len(*set) == before
}

package limit

// Sizes answers how many peers and strangers are remembered, and of how many something goes on.
func (g *Guard) Sizes() (known, strangers, going int) {
	return g.known.Len(), g.strangers.Len(), len(g.going)
}

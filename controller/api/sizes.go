package api

// Sizes of what may be sent, in bytes. Who has no certificate may send least.
const (
	mostBody  = 1 << 20
	mostFirst = 64 << 10
	// MostHeader is for the request line and the headers; the ids in a query are
	// what is long in them.
	MostHeader = 64 << 10
)

// MostBody is how large the body of a call may be; catalog is what a catalog may have.
func (r Route) MostBody(catalog int64) int64 {
	switch {
	case r.ID == PutCatalog.ID:
		return catalog
	case r.Permits("") || r.Permits(Anyone):
		return mostFirst
	}
	return mostBody
}

package store_test

import (
	"testing"

	"xce.internal/elastic/controller/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

package store

import "testing"

// ForgetTouched forgets what all transactions so far have touched.
func ForgetTouched(t *testing.T, s *Store) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *Tx) error {
		_, err := tx.tx.ExecContext(tx.ctx, "DELETE FROM touched")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// LoseLast makes the database one that has never heard of the last transaction,
// which wrote one host.
func LoseLast(t *testing.T, s *Store, host string) {
	t.Helper()
	for _, statement := range []string{
		"DELETE FROM hosts WHERE name = '" + host + "'", "DELETE FROM touched WHERE seq = (SELECT seq FROM turn)",
		"UPDATE turn SET seq = seq - 1, mark = (SELECT key FROM touched WHERE kind = 'mark' ORDER BY seq DESC LIMIT 1)",
	} {
		if _, err := s.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

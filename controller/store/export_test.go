package store

import "testing"

// ForgetTouched forgets what all transactions so far have touched.
func ForgetTouched(t *testing.T, s *Store) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *Tx) error {
		if _, err := tx.tx.ExecContext(tx.ctx, "DELETE FROM touched"); err != nil {
			return err
		}
		_, err := tx.tx.ExecContext(tx.ctx, "UPDATE turn SET pruned = seq")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

-- What a holder is held to, as a JSON list; nothing: nothing beyond the scope.
ALTER TABLE assignment ADD COLUMN constraints TEXT;

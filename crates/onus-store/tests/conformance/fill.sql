-- A workspace with thousands of everything, so that the planner has something to avoid.
INSERT INTO worker SELECT 1, '@w' || n, 'agent', NULL, NULL, 'active', 'UTC' FROM generate_series(1, 3000) n;
INSERT INTO workstation SELECT 1, 'w-' || n, 'logical', NULL, 'ready', 'reusable', 1 FROM generate_series(1, 3000) n;
INSERT INTO task SELECT 1, n, 'T-' || n, n::text, 't', NULL, 'x' || n % 9, 'feature',
    CASE n % 3 WHEN 0 THEN 'open' WHEN 1 THEN 'complete' ELSE 'in_progress' END, n % 5, 'normal', 'r' || n % 9, n % 3, NULL,
    NULL, '["a/**"]', CASE WHEN n > 100 THEN 'T-' || n % 100 + 1 END, n, 'mail:' || n, NULL, NULL, 0, 1, NULL, 1,
    decode(lpad(to_hex(n), 64, '0'), 'hex'), '@w1', n, n, NULL, NULL, 0, n % 2, NULL FROM generate_series(1, 9000) n;
INSERT INTO dependency SELECT 1, 'T-' || n, 'T-' || n - 1, 0 FROM generate_series(2, 9000) n;
INSERT INTO assignment SELECT 1, 'T-' || n, 1, '@w' || n % 3000 + 1, NULL, 'w-' || n % 3000 + 1, '\x00', 1, n, n, 'h.b.1', 0,
    NULL, 0, NULL, CASE WHEN n > 20 THEN n END, NULL FROM generate_series(1, 9000) n;
INSERT INTO session SELECT 1, n, 'T-' || n, 1, '@w' || n % 3000 + 1, 'w-' || n % 3000 + 1, n * 60000, n * 60000 + 30000,
    'released' FROM generate_series(1, 9000) n;
INSERT INTO ledger SELECT 1, n, 'T-' || n, n, '@w1', NULL, 1, 'added', '{}', decode(lpad(to_hex(n), 64, '0'), 'hex'),
    decode(lpad(to_hex(n), 64, '0'), 'hex') FROM generate_series(1, 9000) n;
INSERT INTO note SELECT 1, n, 'T-' || n, 'progress', 'x' FROM generate_series(1, 9000) n;
INSERT INTO session_fact SELECT 1, n, 'T-' || n, n, CASE n % 2 WHEN 0 THEN 'used' ELSE 'corrected' END, n, n + 1, 'k'
    FROM generate_series(1, 9000) n;
INSERT INTO approval SELECT 1, n, '@w' || n % 3000 + 1, '2026-01-01', '2026-01-31', '\x00' FROM generate_series(1, 9000) n;
INSERT INTO evidence SELECT 1, n, 'T-' || n, 'c', 'passed', 0, NULL, 1, NULL, 0, 'o', 1, 'x', 'x', 'x'
    FROM generate_series(1, 9000) n;
INSERT INTO review SELECT 1, n, 'T-' || n, 'approved', 'implemented', NULL, NULL FROM generate_series(1, 9000) n;
INSERT INTO request (workspace, id, fingerprint, seq) SELECT 1, decode(lpad(to_hex(n), 32, '0'), 'hex'), '\x00', n FROM generate_series(1, 9000) n;
ANALYZE;

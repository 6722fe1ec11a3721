-- A walk through pyzorder's statements, from a plain table to a clustered one and back. It creates
-- its own database and drops it at the end. Run it unchanged:
--
--   spark-sql --jars pyzorder-spark-4.3_2.13-0.1.0.jar \
--             --conf spark.sql.extensions=io.pyzorder.ZOrderExtensions -f walkthrough.sql
--   beeline -u jdbc:hive2://server:10000 -f walkthrough.sql

CREATE DATABASE zorder_walkthrough;
USE zorder_walkthrough;

-- A typical table: each of its 20 files spans all customers and all days.
CREATE TABLE sales USING parquet AS
SELECT /*+ REPARTITION(20) */
  id % 1000 AS customer_id,
  date_add(DATE'2024-01-01', CAST(id * 7919 % 365 AS INT)) AS sold_date,
  id AS amount
FROM range(200000);

-- Without an index, the query opens every file.
EXPLAIN SELECT sum(amount) FROM sales WHERE customer_id = 7;
SELECT sum(amount) AS amount_before FROM sales WHERE customer_id = 7;

-- The default file size, 256m, suits real tables. This table is small.
SET spark.sql.zorder.optimize.targetFileSize = 64k;

-- Estimate the effect first. A dry run does not change anything.
OPTIMIZE sales ZORDER BY (customer_id, sold_date) DRY RUN;

-- Cluster the files, and store the bounds of their columns in an index.
OPTIMIZE sales ZORDER BY (customer_id, sold_date);

-- The query now opens only a few files, and returns the same result.
EXPLAIN SELECT sum(amount) FROM sales WHERE customer_id = 7;
SELECT sum(amount) AS amount_after FROM sales WHERE customer_id = 7;
EXPLAIN SELECT * FROM sales WHERE sold_date = DATE'2024-02-29' AND customer_id < 100;

-- Show the health of the index, with one row per column. Then show the index itself as a table.
DESCRIBE SKIPPING INDEX ON sales;
SELECT path, num_records, customer_id_minValue, customer_id_maxValue
FROM skipping_index('sales') ORDER BY path LIMIT 3;

-- New rows are indexed as they are written, and the next OPTIMIZE clusters them. A second OPTIMIZE
-- has nothing left to do.
INSERT INTO sales VALUES (7, DATE'2025-01-01', 1);
OPTIMIZE sales ZORDER BY (customer_id, sold_date);
OPTIMIZE sales ZORDER BY (customer_id, sold_date);

-- REFRESH indexes files that other engines wrote.
REFRESH SKIPPING INDEX ON sales;

-- Replaced files are kept for a week. During that week, RESTORE can bring them back.
SELECT run, operation, began, removed, added, kept_bytes FROM optimize_history('sales');
RESTORE sales TO BEFORE OPTIMIZE;
VACUUM sales DRY RUN;

-- Collect statistics only, without rewriting files.
DROP SKIPPING INDEX ON sales;
CREATE SKIPPING INDEX ON sales (customer_id, sold_date);

-- Declare the clustering columns of the table. OPTIMIZE then does not need a ZORDER BY.
ALTER TABLE sales SET TBLPROPERTIES ('zorder.clusterBy' = 'customer_id, sold_date');
OPTIMIZE sales;
SELECT sum(amount) AS amount_of_all FROM sales WHERE customer_id = 7;

RESET spark.sql.zorder.optimize.targetFileSize;
USE default;
DROP DATABASE zorder_walkthrough CASCADE;

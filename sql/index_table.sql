-- An example of an index table, which has one row per data file. The columns of the indexed table are
-- customer_id BIGINT, price DOUBLE and address STRUCT<city: STRING>. FORMAT.md, section "Index table",
-- explains each column. SELECT * FROM skipping_index('sales') shows the rows of a real index table.
CREATE TABLE sales_index (
  path STRING NOT NULL,
  size BIGINT NOT NULL,
  modification_time BIGINT NOT NULL,
  num_records BIGINT NOT NULL,
  clustered_by ARRAY<STRING> NOT NULL,
  read_settings STRING NOT NULL,
  sketch_file STRING,
  sketch_number INT,

  customer_id_minValue BIGINT,
  customer_id_maxValue BIGINT,
  customer_id_num_nulls BIGINT,
  customer_id_exact BOOLEAN NOT NULL,
  customer_id_empty BOOLEAN NOT NULL,
  customer_id_settings_dependent BOOLEAN NOT NULL,

  price_minValue DOUBLE,
  price_maxValue DOUBLE,
  price_num_nulls BIGINT,
  price_nan_seen BOOLEAN NOT NULL,
  price_exact BOOLEAN NOT NULL,
  price_empty BOOLEAN NOT NULL,
  price_settings_dependent BOOLEAN NOT NULL,

  `address.city_minValue` STRING,
  `address.city_maxValue` STRING,
  `address.city_num_nulls` BIGINT,
  `address.city_exact` BOOLEAN NOT NULL,
  `address.city_empty` BOOLEAN NOT NULL,
  `address.city_settings_dependent` BOOLEAN NOT NULL
) USING parquet;

package org.apache.spark.sql.pyzorder

import scala.util.control.NonFatal

import org.apache.spark.sql.internal.SQLConf

/**
 * One setting of pyzorder: documented in `SET -v`, and checked by `SET`.
 *
 * Spark keeps its registry of settings to its own packages, therefore this class lives in one.
 *
 * @param key     full key, `spark.sql.zorder.<noun>.<noun>`
 * @param default what holds when nothing is set, as one would write it
 * @param doc     what `SET -v` says
 * @param parse   the value of a text; throws IllegalArgumentException with a sentence
 * @param public  false: for tests, not shown by `SET -v`
 */
class Setting[T](
    val key: String,
    val default: String,
    val doc: String,
    parse: String => T,
    val public: Boolean = true) {

  register()

  /** The session's value. */
  def get(conf: SQLConf): T = checked(conf.getConfString(key, default), key)

  /** The value of `default`. */
  def defaultValue: T = parse(default)

  protected def checked(text: String, where: String): T =
    try parse(text)
    catch {
      case NonFatal(failure) =>
        throw io.pyzorder.common.ZOrderErrors.invalidSetting(where, text, failure.getMessage)
    }

  /** A second class loader of the same JVM finds the key taken, by this same page: let it be. */
  private def register(): Unit =
    if (!SQLConf.containsConfigKey(key)) {
      val builder = SQLConf.buildConf(key).doc(doc).version("0.1.0")
      (if (public) builder else builder.internal()).stringConf
        .transform { text => checked(text, key); text }
        .createWithDefault(default)
    }
}

/** A setting that a table may have of its own, as a property without the prefix `spark.sql.`. */
final class TableSetting[T](key: String, default: String, doc: String, parse: String => T)
    extends Setting[T](key, default, doc, parse) {

  /** The key as a table property. */
  def property: String = key.stripPrefix("spark.sql.")

  /** The value for one table: what the session set explicitly, else the table's property. */
  def get(conf: SQLConf, properties: Map[String, String]): T =
    chosen(conf, properties).getOrElse(get(conf))

  /** The value that the session or the table sets explicitly; None: neither does. */
  def chosen(conf: SQLConf, properties: Map[String, String]): Option[T] =
    if (conf.contains(key)) Some(get(conf)) else ofTable(properties)

  /** The table's property, whatever the session says; None: it has none. */
  def ofTable(properties: Map[String, String]): Option[T] =
    properties.find(_._1.equalsIgnoreCase(property)).map { case (_, text) =>
      checked(text, property)
    }
}

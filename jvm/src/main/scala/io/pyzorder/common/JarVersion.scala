package io.pyzorder.common

import java.net.JarURLConnection

import org.apache.spark.SPARK_VERSION

/** Checks that pyzorder's jar was built for the minor version of Spark that loads it. */
private[pyzorder] object JarVersion {

  /** The attribute of the jar's manifest that contains the minor version of Spark. */
  private val Attribute = "Pyzorder-Spark-Version"

  /**
   * Raises ZORDER_JAR_FOR_OTHER_SPARK if the jar was built for another minor version. Without this
   * check, many statements would succeed, and others would fail with a NoSuchMethodError.
   */
  def check(): Unit =
    for (built <- builtFor if built != minor(SPARK_VERSION)) {
      throw ZOrderErrors.jarForOtherSpark(built, minor(SPARK_VERSION))
    }

  /**
   * None if the classes are not in a jar with this attribute, for example because they are in an
   * IDE's output folder.
   */
  private def builtFor: Option[String] =
    getClass.getResource(getClass.getSimpleName + ".class").openConnection() match {
      case jar: JarURLConnection =>
        jar.setUseCaches(false)
        val file = jar.getJarFile
        try Option(file.getManifest).flatMap(m => Option(m.getMainAttributes.getValue(Attribute)))
        finally file.close()
      case _ => None
    }

  private def minor(version: String): String = version.split('.').take(2).mkString(".")
}

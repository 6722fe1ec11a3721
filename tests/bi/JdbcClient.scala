import java.lang.reflect.{InvocationTargetException, Method}
import java.sql.{Connection, Date, DriverManager, PreparedStatement, ResultSet, Timestamp}
import java.util.{ArrayList => JavaList, LinkedHashMap => JavaMap}

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/**
 * A JDBC client that reads requests from its standard input and writes answers to its standard
 * output. Each request and each answer is a line of JSON. clients.py sends the requests. The client
 * uses Hive's JDBC driver, which ships with Spark.
 */
object JdbcClient {

  private val json = new ObjectMapper

  def main(arguments: Array[String]): Unit = {
    val connection = DriverManager.getConnection(arguments(0), arguments(1), "")
    val requests = scala.io.Source.stdin.getLines()
    try requests.foreach(line => println(json.writeValueAsString(answer(connection, line))))
    finally connection.close()
  }

  private def answer(connection: Connection, line: String): JavaMap[String, Any] =
    try run(connection, json.readTree(line))
    catch {
      case NonFatal(failure) =>
        val cause = failure match {
          case wrapped: InvocationTargetException => wrapped.getCause
          case other => other
        }
        map("error" -> cause.toString)
    }

  private def run(connection: Connection, request: JsonNode): JavaMap[String, Any] =
    request.get("do").asText match {
      case "query" =>
        val statement = connection.createStatement()
        try {
          if (statement.execute(request.get("sql").asText)) read(statement.getResultSet)
          else map("columns" -> new JavaList[Any], "rows" -> new JavaList[Any])
        } finally statement.close()
      case "prepared" =>
        val statement = connection.prepareStatement(request.get("sql").asText)
        try {
          val values = request.get("values")
          (0 until values.size).foreach(i => bind(statement, i + 1, values.get(i)))
          read(statement.executeQuery())
        } finally statement.close()
      case "metadata" =>
        val metadata = connection.getMetaData
        val given = request.get("arguments")
        val method = classOf[java.sql.DatabaseMetaData].getMethods
          .find(m => m.getName == request.get("call").asText && m.getParameterCount == given.size)
          .get
        method.invoke(metadata, parameters(method, given): _*) match {
          case rows: ResultSet => read(rows)
          case value => map("value" -> String.valueOf(value))
        }
    }

  /** Sets a parameter. `value` is a list with the parameter's type and text. */
  private def bind(statement: PreparedStatement, at: Int, value: JsonNode): Unit = {
    val text = value.get(1).asText
    value.get(0).asText match {
      case "int" => statement.setInt(at, text.toInt)
      case "long" => statement.setLong(at, text.toLong)
      case "double" => statement.setDouble(at, text.toDouble)
      case "string" => statement.setString(at, text)
      case "date" => statement.setDate(at, Date.valueOf(text))
      case "timestamp" => statement.setTimestamp(at, Timestamp.valueOf(text))
      case "boolean" => statement.setBoolean(at, text.toBoolean)
    }
  }

  private def parameters(method: Method, given: JsonNode): Seq[AnyRef] =
    method.getParameterTypes.toSeq.zipWithIndex.map { case (wanted, i) =>
      val node = given.get(i)
      if (node.isNull) null
      else if (wanted == classOf[Array[String]]) {
        (0 until node.size).map(j => node.get(j).asText).toArray
      } else if (wanted == classOf[Boolean]) {
        Boolean.box(node.asBoolean)
      } else if (wanted == classOf[Int]) {
        Int.box(node.asInt)
      } else {
        node.asText
      }
    }

  /** The rows of a result, and the metadata of its columns. */
  private def read(result: ResultSet): JavaMap[String, Any] = {
    val metadata = result.getMetaData
    val columns = new JavaList[Any]
    (1 to metadata.getColumnCount).foreach { i =>
      columns.add(map(
        "name" -> metadata.getColumnName(i),
        "label" -> metadata.getColumnLabel(i),
        "type" -> metadata.getColumnType(i),
        "typeName" -> metadata.getColumnTypeName(i),
        "className" -> metadata.getColumnClassName(i),
        "precision" -> metadata.getPrecision(i),
        "scale" -> metadata.getScale(i),
        "displaySize" -> metadata.getColumnDisplaySize(i),
        "nullable" -> metadata.isNullable(i)))
    }
    val rows = new JavaList[Any]
    while (result.next()) {
      val row = new JavaList[Any]
      (1 to metadata.getColumnCount).foreach { i =>
        val value = result.getObject(i)
        row.add(if (value == null) null else value.toString)
      }
      rows.add(row)
    }
    result.close()
    map("columns" -> columns, "rows" -> rows)
  }

  private def map(entries: (String, Any)*): JavaMap[String, Any] = {
    val made = new JavaMap[String, Any]
    entries.foreach { case (key, value) => made.put(key, value) }
    made
  }
}

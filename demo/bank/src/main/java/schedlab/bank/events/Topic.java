package schedlab.bank.events;

/** The topics; their names are constants because annotations need them. */
public enum Topic {
  TRANSACTIONS(Topic.TRANSACTIONS_NAME),
  FRAUD_ALERTS(Topic.FRAUD_ALERTS_NAME);

  public static final String TRANSACTIONS_NAME = "transactions";
  public static final String FRAUD_ALERTS_NAME = "fraud-alerts";

  private final String topicName;

  Topic(String topicName) {
    this.topicName = topicName;
  }

  public String topicName() {
    return topicName;
  }
}

package schedlab.load;

/** The parts of a run, in their order. */
enum Phase {
  WARM_UP("warm-up"),
  RAMP_UP("ramp-up"),
  STEADY("steady"),
  RAMP_DOWN("ramp-down");

  private final String title;

  Phase(String title) {
    this.title = title;
  }

  String title() {
    return title;
  }

  static Phase of(String title) {
    for (Phase phase : values()) {
      if (phase.title.equals(title)) {
        return phase;
      }
    }
    throw new IllegalArgumentException("there is no phase '%s'".formatted(title));
  }
}

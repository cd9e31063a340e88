package schedlab.bank.events;

import com.fasterxml.jackson.annotation.JsonIgnore;

/** Something that happened and that others want to know. It is published after the commit. */
public interface BankEvent {

  @JsonIgnore
  Topic topic();

  /** Events of one key are read in the order in which they happened. */
  @JsonIgnore
  String key();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 5: with -w that is said on stderr. */
/* flags: -w -o /dev/null */
/* stderr: dtrace: allowing destructive actions */
BEGIN
{
	exit(0);
}

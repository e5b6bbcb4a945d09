/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 38 and 39: the fifth argument is what is added. */
BEGIN
{
	@ = lquantize(5, 0, 30, 10, 3);
	@ = lquantize(15, 0, 30, 10, -1);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
             < 0                     |                     0        
               0                     |@@@@@@@@@@@@@@@      3        
              10                @@@@@|                     -1       
              20                     |                     0        

*/
